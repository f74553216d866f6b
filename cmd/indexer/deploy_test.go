package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"ledgerindexer/internal/config"
)

// settingsOf returns the settings with which the daemon would run, by name: the command takes each flag, variable and
// line of the file.
func settingsOf(t *testing.T, environ map[string]string, args ...string) map[string]any {
	t.Helper()
	require.Equal(t, "run", args[0])
	code, out, said := command(t, environ, append([]string{"config", "--json"}, args[1:]...)...)
	require.Equal(t, config.ExitDone, code, said)
	var list config.Settings
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	settings := map[string]any{}
	for _, s := range list {
		settings[s.Name] = s.Value
	}
	return settings
}

type labels struct {
	App string `yaml:"app.kubernetes.io/name"`
}

type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels labels
	}
	Data map[string]string
	Spec struct {
		Replicas     int
		MinAvailable int `yaml:"minAvailable"`
		Selector     struct {
			MatchLabels labels `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels labels }
			Spec     struct {
				ServiceAccountName string         `yaml:"serviceAccountName"`
				SecurityContext    map[string]any `yaml:"securityContext"`
				Containers         []container
				Volumes            []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
				}
			}
		}
	}
}

type container struct {
	Args  []string
	Env   []struct{ Name, Value string }
	Ports []struct {
		Name          string
		ContainerPort string `yaml:"containerPort"`
	}
	LivenessProbe   probe          `yaml:"livenessProbe"`
	ReadinessProbe  probe          `yaml:"readinessProbe"`
	SecurityContext map[string]any `yaml:"securityContext"`
	VolumeMounts    []struct {
		Name      string
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// The manifests are of one piece, and the daemon takes every setting that they have.
func TestKubernetesManifests(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../../deploy/kubernetes/ledgerindexer.yaml")
	require.NoError(t, err)
	defer file.Close()
	of := map[string]manifest{}
	for decoder := yaml.NewDecoder(file); ; {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, labels{"ledgerindexer"}, m.Metadata.Labels, m.Kind)
		require.Equal(t, "ledgerindexer", m.Metadata.Name)
		of[m.Kind] = m
	}
	deployment, budget := of["Deployment"].Spec, of["PodDisruptionBudget"].Spec
	require.Contains(t, of, "ServiceAccount")
	pod := deployment.Template.Spec
	require.Equal(t, "ledgerindexer", pod.ServiceAccountName)
	require.Equal(t, 2, deployment.Replicas)
	require.Equal(t, 1, budget.MinAvailable)
	for _, selected := range []labels{deployment.Selector.MatchLabels, budget.Selector.MatchLabels} {
		require.Equal(t, deployment.Template.Metadata.Labels, selected)
	}
	require.Equal(t, true, pod.SecurityContext["runAsNonRoot"])
	require.Len(t, pod.Containers, 1)
	indexer := pod.Containers[0]
	require.Equal(t, true, indexer.SecurityContext["readOnlyRootFilesystem"])
	require.Equal(t, false, indexer.SecurityContext["allowPrivilegeEscalation"])
	require.Equal(t, map[string]any{"drop": []any{"ALL"}}, indexer.SecurityContext["capabilities"])

	folder, mounted := t.TempDir(), map[string]string{}
	for _, mount := range indexer.VolumeMounts {
		mounted[mount.Name] = mount.MountPath
	}
	environ := map[string]string{}
	for _, variable := range indexer.Env {
		environ[variable.Name] = variable.Value
	}
	args := indexer.Args
	for _, volume := range pod.Volumes {
		require.Contains(t, mounted, volume.Name)
		if volume.ConfigMap.Name == "" {
			continue
		}
		for name, text := range of["ConfigMap"].Data {
			require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
		}
		for i := range args {
			args[i] = strings.Replace(args[i], mounted[volume.Name], folder, 1)
		}
	}
	settings := settingsOf(t, environ, args...)
	require.Contains(t, settings["ledger-token-file"], mounted["secret"]+"/")
	require.Len(t, mounted, len(pod.Volumes))
	require.Len(t, indexer.Ports, 1)
	require.Equal(t, "0.0.0.0:"+indexer.Ports[0].ContainerPort, settings["listen"])
	require.Regexp(t, `^127\.0\.0\.1:`, settings["page-listen"])
	require.Equal(t, probe{struct{ Path, Port string }{"/healthz", indexer.Ports[0].Name}}, indexer.LivenessProbe)
	require.Equal(t, probe{struct{ Path, Port string }{"/readyz", indexer.Ports[0].Name}}, indexer.ReadinessProbe)
}

// A manifest that is built names the version, as a tag that images can have, and is the same otherwise.
func TestTheManifestNamesTheVersion(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("../../deploy/kubernetes/ledgerindexer.yaml")
	require.NoError(t, err)
	for version, tag := range map[string]string{
		"v1.2.3": "v1.2.3", "v0.0.0-20261128120000-0123456789ab+dirty": "v0.0.0-20261128120000-0123456789ab-dirty", "(devel)": "devel",
	} {
		built, err := exec.CommandContext(t.Context(), "../../.ci/manifest", version).Output()
		require.NoError(t, err)
		require.Contains(t, string(built), "/ledgerindexer:"+tag+"\n")
		require.Equal(t, string(template), strings.Replace(string(built), "/ledgerindexer:"+tag+"\n", "/ledgerindexer:VERSION\n", 1))
	}
}

const serviceFile = "../../deploy/systemd/ledgerindexer.service"

// The daemon takes the flags and variables of the service.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(serviceFile)
	require.NoError(t, err)
	started := regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/indexer (.*)$`).FindSubmatch(text)
	require.NotNil(t, started)
	variables := regexp.MustCompile(`(?m)^Environment=(.*)$`).FindSubmatch(text)
	require.NotNil(t, variables)
	environ := map[string]string{}
	for assignment := range strings.FieldsSeq(string(variables[1])) {
		name, value, _ := strings.Cut(assignment, "=")
		environ[name] = value
	}
	environ["INDEXER_CONFIG"] = filepath.Join(t.TempDir(), filepath.Base(environ["INDEXER_CONFIG"]))
	require.NoError(t, os.WriteFile(environ["INDEXER_CONFIG"], []byte("database-url: postgres://indexer@db/ledger\n"), 0o600))
	settings := settingsOf(t, environ, strings.Fields(string(started[1]))...)
	require.Equal(t, "json", settings["log-format"])
	require.Equal(t, "postgres://indexer@db/ledger", settings["database-url"])
}

// systemd finds little that the service could do beyond its task.
func TestSystemdSecurity(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian's package systemd)")
	}
	said, err := exec.CommandContext(t.Context(), analyze, "security", "--no-pager", "--offline=true", "--threshold=20", serviceFile).CombinedOutput()
	require.NoError(t, err, string(said))
	require.Contains(t, string(said), "Overall exposure level")
}
