package throwaway

import (
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/tools/hermetic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Tests(m)) }
