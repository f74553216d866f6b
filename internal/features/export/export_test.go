package export

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Once its lock was lost an export changes nothing any more.
func TestNothingChangesWithoutTheLock(t *testing.T) {
	t.Parallel()
	folder, err := openFolder(t.TempDir(), true)
	require.NoError(t, err)
	locked, lose := context.WithCancelCause(t.Context())
	place := lockedPlace{folder, locked}
	require.NoError(t, place.Write(t.Context(), "manifests/1.json", text("some")))
	lost := errors.New("the session has ended")
	lose(lost)
	require.ErrorIs(t, place.Write(t.Context(), "manifests/1.json", text("other")), lost)
	require.ErrorIs(t, place.Remove(t.Context(), "manifests/1.json"), lost)
	require.Equal(t, "some", contentOf(t, place, "manifests/1.json"))
}
