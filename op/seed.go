package op

// SetSeed sets the graph-level seed of the random operations that are added later, through any
// scope of the graph.
func (s *Scope) SetSeed(seed int64) { s.b.seed = &seed }

// defaultGraphSeed is TensorFlow's graph-level seed for operations with a seed in a graph without
// one.
const defaultGraphSeed = 87654321

// seedModulus is the modulus of seeds, as in TensorFlow's Python API.
const seedModulus = 1<<31 - 1

// Seeds returns the pair of seeds for a random operation with the given operation-level seed, nil
// for none. It follows TensorFlow, so that the same program draws the same numbers. In a graph with
// a seed, the operation-level seed of an operation without one is the number of such operations
// before it. The pair 0, 0 means that each session chooses random seeds.
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
