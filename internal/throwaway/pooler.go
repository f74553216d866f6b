package throwaway

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TransactionPooler stands before a database, until the test is done, as a pooler in
// transaction mode does: with a few sessions, of which the one that has been free
// for longest serves the next transaction of any client. It keeps startup parameters
// to itself and lets everybody in. It returns the URL to connect to.
func TransactionPooler(t testing.TB, database string, sessions int) string {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan *pgconn.HijackedConn, sessions)
	for range sessions {
		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		session, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = session.Conn.Close() })
		free <- session
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer conn.Close()
				pooledClient(conn, free)
			})
		}
	})
	return "postgres://somebody@" + listener.Addr().String() + "/" + url.PathEscape(config.Database) + "?sslmode=disable"
}

// pooledClient serves one client until it leaves.
func pooledClient(conn net.Conn, free chan *pgconn.HijackedConn) {
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	client.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if client.Flush() != nil {
		return
	}
	var session *pgconn.HijackedConn
	defer func() {
		if session != nil {
			free <- session
		}
	}()
	for {
		message, err := client.Receive()
		if _, leaves := message.(*pgproto3.Terminate); err != nil || leaves {
			return
		}
		if session == nil {
			session = <-free
		}
		session.Frontend.Send(message)
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue // the answer comes with the Sync
		}
		status, err := passAnswer(session, client)
		if err != nil {
			return
		}
		if status == 'I' {
			free <- session
			session = nil
		}
	}
}

// passAnswer hands a session's answer to the client and says in which state the transaction is then.
func passAnswer(session *pgconn.HijackedConn, client *pgproto3.Backend) (status byte, err error) {
	if err := session.Frontend.Flush(); err != nil {
		return 0, err
	}
	for {
		message, err := session.Frontend.Receive()
		if err != nil {
			return 0, err
		}
		client.Send(message)
		if ready, ok := message.(*pgproto3.ReadyForQuery); ok {
			return ready.TxStatus, client.Flush()
		}
	}
}
