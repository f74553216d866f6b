package statuspage

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"ledgerindexer/internal/tools/brief"
)

// startBrowser starts a browser without a window. It complains, for example, where a page may not load something.
func startBrowser(t *testing.T) (ctx context.Context, complaints func() []string) {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not in PATH (Debian's package chromium)")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.DisableGPU}
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, end := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(end)
	ctx, endTab := chromedp.NewContext(ctx)
	t.Cleanup(endTab)
	var mu sync.Mutex
	var list []string
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		if entry, is := event.(*log.EventEntryAdded); is {
			mu.Lock()
			defer mu.Unlock()
			list = append(list, entry.Entry.Text)
		}
	}))
	_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(t, err)
	return ctx, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// look is how a browser has drawn the page.
type look struct {
	Title, Back, Line, Bar string
	Overflow               float64  // by how much the page is wider than the window, in pixels
	Wider                  []string // elements that are cut off at the right
	Broken                 []string // numbers that go on in a second line
	Charts, Scripts        int
}

const lookAtPage = `({
	Title: document.title,
	Back: getComputedStyle(document.body).backgroundColor,
	Line: getComputedStyle(document.querySelector('.chart .line')).stroke,
	Bar: getComputedStyle(document.querySelector('.bar .shown')).fill,
	Overflow: document.documentElement.scrollWidth - innerWidth,
	Wider: [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80)),
	Broken: [...document.querySelectorAll('.tile dd:not(.quiet)')].filter(e => e.getClientRects()[0].height > 40).map(e => e.textContent),
	Charts: [...document.querySelectorAll('svg.chart')].map(e => e.getBoundingClientRect()).filter(r => r.width > 200 && r.height > 80).length,
	Scripts: document.scripts.length,
})`

// A browser draws the page as it is meant, in light and dark, and as narrow as a telephone, and complains of nothing.
func TestPageInABrowser(t *testing.T) {
	brief.Long(t, "starts a browser")
	browser, complaints := startBrowser(t)
	w := newWorld(t)
	w.exec(t, "UPDATE indexer.checkpoints SET ledger_offset = 6270848484716879") // as offsets of a network are
	w.measure(t, time.Hour/2)
	w.measure(t, 20*time.Second)
	w.measure(t, 0)
	mux := http.NewServeMux()
	w.page.Register(mux)
	server := httptest.NewServer(mux)
	defer server.Close()
	for name, c := range map[string]struct {
		width        int64
		scheme, back string
		line         string
	}{
		"light":  {1100, "light", "rgb(244, 245, 247)", "rgb(47, 102, 208)"},
		"dark":   {1100, "dark", "rgb(16, 20, 27)", "rgb(116, 162, 255)"},
		"narrow": {360, "light", "rgb(244, 245, 247)", "rgb(47, 102, 208)"},
	} {
		_, err := chromedp.Call(browser, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: c.width, Height: 900, DeviceScaleFactor: 1, Mobile: c.width < 500,
		})
		require.NoError(t, err)
		_, err = chromedp.Call(browser, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: c.scheme}},
		})
		require.NoError(t, err)
		require.NoError(t, chromedp.Do(browser, chromedp.Navigate(server.URL)))
		got, err := chromedp.Run(browser, chromedp.Evaluate[look](lookAtPage))
		require.NoError(t, err)
		require.LessOrEqual(t, got.Overflow, 0.0, "%s: it need not be moved sideways", name)
		got.Overflow = 0
		require.Equal(t, look{Title: "waiting · ledgerindexer", Back: c.back, Line: c.line, Bar: c.line, Wider: []string{}, Broken: []string{}, Charts: 4}, got, name)
		if folder := os.Getenv("SCREENSHOTS"); folder != "" {
			image, err := chromedp.Run(browser, chromedp.FullScreenshot(100))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, name+".png"), image, 0o644))
		}
	}
	require.Empty(t, complaints())
}
