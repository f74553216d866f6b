package store

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/throwaway"
)

// tlsBefore stands before a database and speaks TLS for it. It returns its address and the PEM file of its certificate.
func tlsBefore(t *testing.T, database string) (address, authority string) {
	t.Helper()
	signer := throwaway.NewAuthority(t, "of the database")
	authority = filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority, []byte(signer.PEM), 0o600))
	secure := &tls.Config{Certificates: []tls.Certificate{signer.Pair("database")}}

	config, err := pgconn.ParseConfig(database)
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { passOn(conn, secure, config) })
		}
	})
	return listener.Addr().String(), authority
}

func passOn(conn net.Conn, secure *tls.Config, database *pgconn.Config) {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil { // the request for TLS
		return
	}
	if _, err := conn.Write([]byte("S")); err != nil {
		return
	}
	client := tls.Server(conn, secure)
	defer func() { _ = client.Close() }() // the test is over
	network, address := pgconn.NetworkAddress(database.Host, database.Port)
	server, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
	if err != nil {
		return
	}
	defer server.Close()
	var done sync.WaitGroup
	done.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = conn.Close()
	done.Wait()
}

func TestInspectTellsHowItIsConnected(t *testing.T) {
	t.Parallel()
	d := emptyDatabase(t)
	config, err := pgconn.ParseConfig(d.URL)
	require.NoError(t, err)
	address, authority := tlsBefore(t, d.URL)
	for query, want := range map[string]Transport{
		"sslmode=prefer":  {Local: true, TLS: "TLS 1.3"},
		"sslmode=require": {Local: true, TLS: "TLS 1.3"},
		"sslmode=verify-ca&sslrootcert=" + authority:   {Local: true, TLS: "TLS 1.3", Verified: true},
		"sslmode=verify-full&sslrootcert=" + authority: {Local: true, TLS: "TLS 1.3", Verified: true},
	} {
		u := url.URL{Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: address, Path: "/" + config.Database, RawQuery: query}
		server, err := d.inspect(u.String()).Server(t.Context())
		require.NoError(t, err, query)
		require.Equal(t, want, server.Transport, query)
	}
	u := url.URL{Scheme: "postgres", User: url.User(config.User), Host: address, Path: "/" + config.Database, RawQuery: "sslmode=verify-full"}
	_, err = d.open(u.String(), nil).Inspect(t.Context())
	require.ErrorContains(t, err, "unknown authority")
}
