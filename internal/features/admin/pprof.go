package admin

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// ServePprof serves go tool pprof on listener, below /debug/pprof/, until ctx ends. Whoever reaches it can read the
// program's memory and slow it down, so listen on loopback only. It answers to addresses and to localhost.
func ServePprof(ctx context.Context, listener net.Listener, logger *slog.Logger) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	// No write timeout: a profile over minutes is answered after them.
	return serveUntil(ctx, listener, logger, &http.Server{Handler: onlyLocal(mux), ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: time.Minute})
}
