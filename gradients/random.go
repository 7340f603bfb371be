package gradients

func init() {
	NotDifferentiable("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "RandomUniformInt", "RandomShuffle", "RandomCrop",
		"Multinomial", "RandomPoisson", "RandomPoissonV2", "ParameterizedTruncatedNormal", "RandomIndexShuffle",
		"StatelessMultinomial", "StatelessRandomBinomial", "StatelessRandomNormal", "StatelessRandomNormalV2", "StatelessRandomPoisson",
		"StatelessRandomUniform", "StatelessRandomUniformV2", "StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2",
		"StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessTruncatedNormal", "StatelessTruncatedNormalV2")
}
