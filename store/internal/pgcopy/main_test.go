package pgcopy

import (
	"testing"

	"go.uber.org/goleak"

	_ "ledgerindexer/internal/hermetic"
	"ledgerindexer/internal/throwaway"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(throwaway.Tests(m)) }
