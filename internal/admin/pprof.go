package admin

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// ServePprof answers go tool pprof on listener, below /debug/pprof/, until ctx ends. Whoever reaches it can read what is
// in memory and slow the program down: the listener belongs on loopback.
func ServePprof(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// Without a limit for writing: a profile over minutes is answered when they have passed.
	return serveUntil(ctx, listener, &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute})
}
