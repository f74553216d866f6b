package config

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// reloading is a command that gets SIGHUP before it waits for one, and after.
type reloading struct{}

func (*reloading) Reloads() {}

func (*reloading) Run(ctx context.Context, reload *Reload, logger *slog.Logger) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := errors.New("the configuration was not read again")
	reload.OnHangup(within, logger, func(any) []string {
		err = nil
		cancel()
		return nil
	})
	return errors.Join(err, syscall.Kill(os.Getpid(), syscall.SIGHUP))
}

// A command that reads its configuration again is asked to at any time, also while it begins and ends. It does not end
// it.
func TestAHangupAtAnyTimeEndsNothing(t *testing.T) {
	var grammar struct {
		Run reloading `cmd:""`
		Log
	}
	var errs bytes.Buffer
	require.Equal(t, ExitDone, Execute(t.Context(), "program", "", &grammar, []string{"run"}, nil, io.Discard, &errs), errs.String())
}
