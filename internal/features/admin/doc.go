// Package admin serves the daemon's endpoints for probes and monitoring: /healthz, /readyz, /metrics and profiles.
package admin
