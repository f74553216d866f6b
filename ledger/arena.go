package ledger

// arena gives out room for lists and for values that pointers point to, a block at a time.
type arena[T any] struct {
	block []T
	from  int // where the list begins that is being filled
}

// start begins a list. What was added to another one that was never taken is forgotten.
func (a *arena[T]) start() { a.from = len(a.block) }

// add adds a zero value to the list that is being filled. The pointer is good until another one is added.
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

// take is the list, nil where nothing was added. Another one begins.
func (a *arena[T]) take() []T {
	if a.from == len(a.block) {
		return nil
	}
	list := a.block[a.from:len(a.block):len(a.block)]
	a.start()
	return list
}

// one is a zero value that is part of no list.
func (a *arena[T]) one() *T {
	a.start()
	return a.add()
}
