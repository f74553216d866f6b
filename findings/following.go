package findings

// Following is what was compared of the records that follow from the updates of a network.
type Following struct {
	Records  int64 // that were derived again, and compared
	Kept     int64 // that follow from updates that were pruned, and so were not compared
	Outdated bool  // they follow by other rules, and will be derived again: nothing was compared
}
