package throwaway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/testcontainers/testcontainers-go"
)

// container is a running container with a PostgreSQL server.
type container struct {
	running *testcontainers.DockerContainer
}

// engineAnswers returns why no container engine can be used; nil if one can.
func engineAnswers(ctx context.Context) (err error) {
	defer func() {
		// The library panics where it can't find an engine at all.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	return errors.Join(provider.Health(ctx), provider.Close())
}

func startContainer(ctx context.Context, o Options) (*Server, error) {
	image := o.Image
	if image == "" {
		image = DefaultImage
	}
	password := rand.Text()
	command := []string{"postgres"}
	settings := serverSettings(o)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		command = append(command, "-c", name+"="+settings[name])
	}
	running, err := testcontainers.Run(ctx, image,
		testcontainers.WithExposedPorts("5432/tcp"),
		testcontainers.WithEnv(map[string]string{
			"POSTGRES_USER":     superuser,
			"POSTGRES_PASSWORD": password,
			"POSTGRES_DB":       "postgres",
			"LANG":              "C.UTF-8",
		}),
		testcontainers.WithCmd(command...),
	)
	c := &container{running: running}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a container of %s: %w", image, err), c.remove())
	}
	connection, err := c.answering(ctx, password)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a container of %s: %w", image, err), c.remove())
	}
	return &Server{kind: Container, database: connection, container: c}, nil
}

// answering waits until the server answers and returns its URL. While the image
// prepares its data folder the port may be open already, so an answer is what
// counts.
//
// The container's port is on the engine's machine. That is this one, or, for a
// process in a container, either the machine around it, as the library supposes, or
// the container itself, if the engine runs there too. So it tries both.
func (c *container) answering(ctx context.Context, password string) (string, error) {
	port, err := c.running.MappedPort(ctx, "5432/tcp")
	if err != nil {
		return "", err
	}
	supposed, err := c.running.Host(ctx)
	if err != nil {
		return "", err
	}
	hosts := []string{supposed}
	if supposed != "localhost" {
		hosts = append(hosts, "localhost")
	}
	ctx, stopOthers := context.WithCancel(ctx)
	defer stopOthers()
	type answer struct {
		url string
		err error
	}
	answers := make(chan answer, len(hosts))
	for _, host := range hosts {
		u := url.URL{
			Scheme: "postgres", User: url.UserPassword(superuser, password),
			Host: net.JoinHostPort(host, port.Port()), Path: "/postgres", RawQuery: "sslmode=disable",
		}
		go func() { answers <- answer{u.String(), awaitAnswer(ctx, u.String(), nil)} }()
	}
	var found string
	var errs []error
	for range hosts {
		a := <-answers
		if a.err == nil && found == "" {
			found = a.url
			stopOthers()
		}
		errs = append(errs, a.err)
	}
	if found == "" {
		return "", errors.Join(errs...)
	}
	return found, nil
}

// remove removes the container and its volumes.
func (c *container) remove() error {
	if c.running == nil {
		return nil
	}
	err := testcontainers.TerminateContainer(c.running, testcontainers.StopTimeout(time.Second))
	if err != nil {
		return fmt.Errorf("remove the PostgreSQL container: %w", err)
	}
	return nil
}
