package op

// SetSeed sets the graph-level seed of the random operations that are added later.
func (s *Scope) SetSeed(seed int64) { s.b.seed = &seed }

// defaultGraphSeed is TensorFlow's, for operations that have a seed in graphs that have none.
const defaultGraphSeed = 87654321

// seedModulus bounds seeds as TensorFlow's Python API does.
const seedModulus = 1<<31 - 1

// Seeds returns the pair of seeds for a random operation with the given operation-level seed, nil
// for none. The rules are TensorFlow's, so that the same program draws the same numbers: in a graph
// with a seed, an operation without one takes the number of such operations before it; 0, 0 stands
// for seeds that are chosen anew in each session.
func (s *Scope) Seeds(seed *int64) (graphSeed, opSeed int64) {
	switch {
	case s.b.seed != nil && seed != nil:
		graphSeed, opSeed = *s.b.seed, *seed
	case s.b.seed != nil:
		graphSeed, opSeed = *s.b.seed, s.b.seeded
		s.b.seeded++
	case seed != nil:
		graphSeed, opSeed = defaultGraphSeed, *seed
	default:
		return 0, 0
	}
	graphSeed, opSeed = boundSeed(graphSeed), boundSeed(opSeed)
	if graphSeed == 0 && opSeed == 0 {
		opSeed = seedModulus
	}
	return graphSeed, opSeed
}

func boundSeed(seed int64) int64 { return (seed%seedModulus + seedModulus) % seedModulus }
