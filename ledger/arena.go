package ledger

// arena allocates the lists of what is decoded, and values for pointers, in blocks.
type arena[T any] struct {
	block []T
	from  int // the beginning of the list that is being filled
}

// start begins a list. It drops a list that was not taken.
func (a *arena[T]) start() { a.from = len(a.block) }

// add adds a zero value to the list that is being filled. The pointer is valid until the next add.
func (a *arena[T]) add() *T {
	const fewest, most = 4, 32
	if len(a.block) == cap(a.block) {
		list := a.block[a.from:]
		room := max(2*len(list), min(most, max(fewest, 2*cap(a.block))))
		a.block, a.from = append(make([]T, 0, room), list...), 0
	}
	a.block = a.block[:len(a.block)+1]
	return &a.block[len(a.block)-1]
}

// count returns how many values the list has.
func (a *arena[T]) count() int { return len(a.block) - a.from }

// take returns the list, nil if nothing was added, and begins another one.
func (a *arena[T]) take() []T {
	if a.from == len(a.block) {
		return nil
	}
	list := a.block[a.from:len(a.block):len(a.block)]
	a.start()
	return list
}

// one returns a pointer to a zero value outside of any list.
func (a *arena[T]) one() *T {
	a.start()
	return a.add()
}
