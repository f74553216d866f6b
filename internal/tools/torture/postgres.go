package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"ledgerindexer/internal/tools/throwaway"
)

// Limits on the PostgreSQL server that faults hit.
const (
	diskSize    = 640 << 20 // bytes of the file system that is filled; a round takes about 100 MB
	reviveLimit = time.Minute
)

// postgres is a temporary server, on a disk of its own if the machine allows that.
type postgres struct {
	server *throwaway.Server
	disk   *throwaway.SmallDisk // nil: the machine does not allow it
	noDisk error                // why
	wire   *throwaway.Wire      // before the database of the round
	name   string               // of that
}

func startPostgres(ctx context.Context) (*postgres, error) {
	p := &postgres{}
	p.disk, p.noDisk = throwaway.NewSmallDisk(diskSize)
	if p.noDisk != nil {
		p.disk = nil
	}
	err := p.run(func() (err error) {
		p.server, err = throwaway.Start(ctx, throwaway.Options{
			Kind: throwaway.Local, TCP: true, InMemory: p.disk == nil,
			Settings: map[string]string{"max_wal_size": "96MB", "min_wal_size": "32MB", "shared_buffers": "64MB"},
		})
		return err
	})
	if err != nil && p.disk != nil {
		p.disk.Close()
	}
	return p, err
}

// run calls fn in the namespace of the disk.
func (p *postgres) run(fn func() error) error {
	if p.disk == nil {
		return fn()
	}
	return p.disk.Run(fn)
}

func (p *postgres) stop() error {
	p.unwire()
	err := p.run(p.server.Stop)
	if p.disk != nil {
		p.disk.Close()
	}
	return err
}

func (p *postgres) unwire() {
	if p.wire != nil {
		p.wire.Close()
		p.wire = nil
	}
}

// fresh replaces the last database with an empty one, and puts a wire before it.
func (p *postgres) fresh(ctx context.Context, name string) error {
	p.unwire()
	if p.name != "" {
		if err := p.server.DropDatabase(ctx, p.name); err != nil {
			return err
		}
	}
	p.name = name
	if err := p.server.CreateDatabase(ctx, name); err != nil {
		return err
	}
	var err error
	p.wire, err = throwaway.NewWire(ctx, p.url())
	return err
}

// url leads to the database beside the wire.
func (p *postgres) url() string { return p.server.URL(p.name) }

// strike injects a fault of a schedule, and reports whether it had an effect.
func (p *postgres) strike(ctx context.Context, s fault) (bool, error) {
	disturb := func(f throwaway.WireFault) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, faultTimeout)
		defer cancel()
		return p.wire.Disturb(ctx, f), nil
	}
	switch s.kind {
	case stopPostgres:
		return p.down(ctx, s, p.server.Kill)
	case crashPostgres:
		return p.down(ctx, s, p.server.Crash)
	case killSession:
		return p.killSession(ctx)
	case endSession:
		return disturb(throwaway.EndSession)
	case cutCopy:
		return disturb(throwaway.CutCopy)
	case cutBeforeCommit:
		return disturb(throwaway.CutBeforeCommit)
	case cutAfterCommit:
		return disturb(throwaway.CutAfterCommit)
	case injectFullDisk:
		return disturb(throwaway.DiskFull)
	case dropConnections:
		return p.wire.Drop() > 0, nil
	case stallPostgres:
		resume := p.wire.Stall()
		defer resume()
		pause(ctx, s.long)
		return p.wire.Lines() > 0, nil
	case fullDisk:
		return p.fill(ctx, s)
	}
	return false, errors.New("PostgreSQL has no fault " + string(s.kind))
}

// down ends the server and starts it again.
func (p *postgres) down(ctx context.Context, s fault, end func() error) (bool, error) {
	if err := p.run(end); err != nil {
		return false, err
	}
	pause(ctx, s.long)
	return true, p.revive(ctx)
}

// killSession kills the process of a session, which makes the server end all others and recover, by itself.
func (p *postgres) killSession(ctx context.Context) (bool, error) {
	conn, err := pgx.Connect(ctx, p.url())
	if err != nil {
		return false, nil // it is still recovering
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // its server ends it too
	var pid int
	err = conn.QueryRow(ctx, `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
		AND backend_type = 'client backend'
		AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, random() LIMIT 1`).Scan(&pid)
	if err != nil {
		return false, nil // there is none now
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return false, err
	}
	if err := process.Kill(); err != nil {
		return false, nil // it has ended
	}
	_ = conn.PgConn().WaitForNotification(ctx) // until the server ends this session too
	for began := time.Now(); ; pause(ctx, 20*ms) {
		if err = p.answers(ctx); err == nil || ctx.Err() != nil {
			return true, nil
		}
		if time.Since(began) > reviveLimit {
			return true, fmt.Errorf("PostgreSQL does not recover from the end of a session's process: %w", err)
		}
	}
}

// fill keeps the disk full until the server has failed because of it, and a while longer.
func (p *postgres) fill(ctx context.Context, s fault) (bool, error) {
	before := p.wire.SawDiskFull()
	if err := p.disk.Fill(); err != nil {
		return false, errors.Join(err, p.disk.Free())
	}
	for deadline := time.Now().Add(2 * faultTimeout); p.wire.SawDiskFull() == before && ctx.Err() == nil &&
		time.Now().Before(deadline); {
		pause(ctx, 20*ms)
	}
	pause(ctx, s.long)
	failed := p.wire.SawDiskFull() > before
	if err := p.disk.Free(); err != nil {
		return failed, err
	}
	if p.answers(ctx) != nil { // it could not write its log, and has ended or is recovering
		return true, p.revive(ctx)
	}
	return failed, nil
}

// revive starts the server again, once the last of its former processes is gone.
func (p *postgres) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviveLimit)
	defer cancel()
	for {
		err := p.run(func() error { return p.server.Restart(ctx) })
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("PostgreSQL does not come back: %w", err)
		}
		pause(ctx, 50*ms)
	}
}

func (p *postgres) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, p.url())
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}
