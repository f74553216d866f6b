package config

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
)

// Reload reads the configuration of a running command again, when it gets SIGHUP.
type Reload struct {
	program       *Program
	args, environ []string
	level         *slog.LevelVar
	inForce       Settings
}

// OnHangup reads the configuration again for each SIGHUP, until ctx ends, and sets the log level. apply gets the
// command with its new settings, applies those that can change while it runs, and returns their names; other changes
// are logged as a warning. A configuration with an error changes nothing, and is logged as an error.
func (r *Reload) OnHangup(ctx context.Context, logger *slog.Logger, apply func(command any) (applied []string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.program.hangups:
			r.again(ctx, logger, apply)
		}
	}
}

func (r *Reload) again(ctx context.Context, logger *slog.Logger, apply func(command any) (applied []string)) {
	now, command, level, err := r.read()
	if err != nil {
		logger.ErrorContext(ctx, "the configuration can't be used: the one before stays in force", "error", err)
		return
	}
	r.level.Set(level)
	applied := append(apply(command), "log-level")
	var changed, waiting []string
	for i, s := range now {
		switch before := r.inForce[i]; {
		case reflect.DeepEqual(before.Value, s.Value):
		case slices.Contains(applied, s.Name):
			changed = append(changed, fmt.Sprintf("%s: %v", s.Name, s.Value))
			r.inForce[i] = s
		default:
			waiting = append(waiting, s.Name)
		}
	}
	logger.InfoContext(ctx, "read the configuration again", "changed", strings.Join(changed, ", "))
	if len(waiting) > 0 {
		logger.WarnContext(ctx, "these settings need a restart", "settings", strings.Join(waiting, ", "))
	}
}

// read parses the same command line and environment again, with the present configuration file.
func (r *Reload) read() (now Settings, command any, level slog.Level, err error) {
	grammar := reflect.New(reflect.TypeOf(r.program.grammar).Elem()).Interface().(logging)
	program, err := NewProgram(r.program.name, "", grammar)
	if err != nil {
		return nil, nil, 0, err
	}
	parsed, err := program.parser.Parse(r.args, r.environ, io.Discard)
	if err != nil {
		return nil, nil, 0, err
	}
	return program.parser.settings(parsed), parsed.Selected().Target.Addr().Interface(), grammar.Level(), nil
}
