// Package admin is what operators and their monitoring see of the daemon: /healthz, /readyz and /metrics.
package admin
