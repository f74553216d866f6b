// Package admin serves the daemon's endpoints for operators and monitoring: /healthz, /readyz, /metrics and profiles.
package admin
