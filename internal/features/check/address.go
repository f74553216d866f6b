package check

import (
	"net"
	"net/url"
	"strconv"
	"strings"

	"ledgerindexer/internal/base/access"
)

// address parses the URL of a server and reports what is wrong with its form. It never repeats a text that it can't
// parse, because that may contain a password. ok is false if the URL can't be used.
func address(s section, flag, text string) (u *url.URL, ok bool) {
	const form = "https://host:port/prefix or http://host:port/prefix"
	u, err := url.Parse(text)
	switch {
	case strings.TrimSpace(text) != text:
		s.problem("url", flag+" has white space around it", "write it without")
	case !strings.Contains(text, "://"):
		s.problem("url", flag+" has no scheme", "write "+form)
	case err != nil:
		s.problem("url", flag+" can't be read as a URL", "write "+form+"; "+access.Escaped)
	case access.CutOff(u): // before anything that repeats a part of it
		s.problem("url", flag+" has an @ behind its host, as where a password has a / in it", "write "+form+"; "+
			access.Escaped)
	case u.Scheme != "http" && u.Scheme != "https":
		s.problem("url", flag+" has the scheme "+u.Scheme, "write "+form+": the indexer uses the API over HTTP, not gRPC "+
			"or a web socket")
	case u.Hostname() == "":
		s.problem("url", flag+" names no host", "write "+form)
	case !validPort(u.Port()):
		s.problem("url", flag+" has the port "+u.Port(), "write "+form+" with a port from 1 to 65535")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		s.problem("url", flag+" has a query or a fragment after the path", "write "+form+" and nothing after it; put a "+
			"token into a file")
	default:
		return u, true
	}
	return nil, false
}

// validPort reports whether a port is valid; an empty one stands for that of the scheme.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// shown formats a URL without user and password.
func shown(u *url.URL) string {
	bare := *u
	bare.User = nil
	return bare.String()
}

// local reports whether a host is this machine.
func local(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
