package access

import (
	"errors"
	"net/http"
	"net/url"
	"sync"

	"golang.org/x/net/http/httpproxy"
)

// ProxyOf returns the proxy that the environment names for a request; nil: none. Its error repeats nothing of that: it
// may hold a password.
func ProxyOf(r *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(r)
	if err == nil && proxy == nil {
		proxy, err = unreadProxy()(r.URL)
	}
	if err != nil || proxy != nil && (proxy.Host == unread || CutOff(proxy)) {
		return nil, &ConnectionError{What: "the environment names a proxy in a way that can't be used",
			Do: "correct HTTPS_PROXY or HTTP_PROXY: " + Escaped, Configured: true, Err: errors.New("no proxy is known")}
	}
	return proxy, nil
}

// unread stands for a proxy that can't be parsed.
const unread = "unread.invalid"

// unreadProxy returns for which addresses the environment names a proxy that can't be parsed. net/http connects without
// one to these.
var unreadProxy = sync.OnceValue(func() func(*url.URL) (*url.URL, error) {
	named := httpproxy.FromEnvironment()
	for _, proxy := range []*string{&named.HTTPProxy, &named.HTTPSProxy} {
		_, err := url.Parse(*proxy)
		if _, asHost := url.Parse("http://" + *proxy); err != nil && asHost != nil {
			*proxy = unread
		} else {
			*proxy = ""
		}
	}
	return named.ProxyFunc()
})
