package admin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Known reports whether a host by which a browser asks is this machine's, or one of others. A site whose name leads to
// this address (DNS rebinding) could else read what is served with its visitors' browsers. Addresses can't be made to
// lead elsewhere.
func Known(host string, others []string) bool {
	host = nameOf(host)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") ||
		slices.ContainsFunc(others, func(known string) bool { return nameOf(known) == host })
}

// nameOf returns the name of a host that is given with or without a port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// onlyLocal serves what is asked for by an address or as localhost.
func onlyLocal(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !Known(r.Host, nil) {
			http.Error(w, fmt.Sprintf("profiles are not served as %q: ask by address, or as localhost", r.Host),
				http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
