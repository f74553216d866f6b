package sandbox

import "testing"

func BenchmarkGrow(b *testing.B) {
	l := NewLedger(Options{Seed: 1})
	for b.Loop() {
		l.Grow(1)
	}
}

func BenchmarkEncode(b *testing.B) {
	l := NewLedger(Options{Seed: 1})
	l.Grow(10_000)
	for _, shape := range []string{ACSDelta, LedgerEffects} {
		b.Run(shape, func(b *testing.B) {
			scope := Scope{Shape: shape}
			v, f, feat := l.view(), scope.compiled(l.names()), scope.features()
			var buf []byte
			bytes, i := 0, 0
			for b.Loop() {
				buf, _ = v.appendUpdate(buf[:0], i%len(v.updates), f, feat)
				bytes += len(buf)
				i++
			}
			b.SetBytes(int64(bytes / i))
		})
	}
}
