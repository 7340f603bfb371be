package parsing

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "ParseSequenceExample", Doc: "Parses features and feature lists from a vector of serialized SequenceExample messages.",
		In: []string{
			"serialized: string", "debug_name: string", "context_dense_defaults: Tcontext_dense",
		},
		Out: []string{
			"context_sparse_indices: Ncontext_sparse * int64", "context_sparse_values: context_sparse_types",
			"context_sparse_shapes: Ncontext_sparse * int64", "context_dense_values: Tcontext_dense",
			"feature_list_sparse_indices: Nfeature_list_sparse * int64", "feature_list_sparse_values: feature_list_sparse_types",
			"feature_list_sparse_shapes: Nfeature_list_sparse * int64", "feature_list_dense_values: feature_list_dense_types",
			"feature_list_dense_lengths: Nfeature_list_dense * int64",
		},
		Attrs: []string{
			"feature_list_dense_missing_assumed_empty: list(string) >= 0", "context_sparse_keys: list(string) >= 0",
			"context_dense_keys: list(string) >= 0", "feature_list_sparse_keys: list(string) >= 0",
			"feature_list_dense_keys: list(string) >= 0", "Ncontext_sparse: int >= 0 = 0", "Ncontext_dense: int >= 0 = 0",
			"Nfeature_list_sparse: int >= 0 = 0", "Nfeature_list_dense: int >= 0 = 0",
			"context_sparse_types: " + elements + " = []", "Tcontext_dense: " + elements + " = []",
			"feature_list_dense_types: " + elements + " = []", "context_dense_shapes: list(shape) >= 0 = []",
			"feature_list_sparse_types: " + elements + " = []", "feature_list_dense_shapes: list(shape) >= 0 = []",
		},
		Shape: sequenceShape(1),
	}, newSequence(1))
	kernel.RegisterNew(opdef.Def{
		Name: "ParseSequenceExampleV2", Doc: "Parses features and feature lists from one serialized SequenceExample message or " +
			"a vector of them.",
		In: []string{
			"serialized: string", "debug_name: string", "context_sparse_keys: string", "context_dense_keys: string",
			"context_ragged_keys: string", "feature_list_sparse_keys: string", "feature_list_dense_keys: string",
			"feature_list_ragged_keys: string", "feature_list_dense_missing_assumed_empty: bool",
			"context_dense_defaults: Tcontext_dense",
		},
		Out: []string{
			"context_sparse_indices: Ncontext_sparse * int64", "context_sparse_values: context_sparse_types",
			"context_sparse_shapes: Ncontext_sparse * int64", "context_dense_values: Tcontext_dense",
			"context_ragged_values: context_ragged_value_types", "context_ragged_row_splits: context_ragged_split_types",
			"feature_list_sparse_indices: Nfeature_list_sparse * int64", "feature_list_sparse_values: feature_list_sparse_types",
			"feature_list_sparse_shapes: Nfeature_list_sparse * int64", "feature_list_dense_values: feature_list_dense_types",
			"feature_list_dense_lengths: Nfeature_list_dense * int64",
			"feature_list_ragged_values: feature_list_ragged_value_types",
			"feature_list_ragged_outer_splits: feature_list_ragged_split_types",
			"feature_list_ragged_inner_splits: feature_list_ragged_split_types",
		},
		Attrs: []string{
			"Ncontext_sparse: int >= 0 = 0", "Tcontext_dense: " + elements + " = []",
			"context_sparse_types: " + elements + " = []", "context_ragged_value_types: " + elements + " = []",
			"context_ragged_split_types: list({int32, int64}) >= 0 = []", "context_dense_shapes: list(shape) >= 0 = []",
			"Nfeature_list_sparse: int >= 0 = 0", "Nfeature_list_dense: int >= 0 = 0",
			"feature_list_dense_types: " + elements + " = []", "feature_list_sparse_types: " + elements + " = []",
			"feature_list_ragged_value_types: " + elements + " = []",
			"feature_list_ragged_split_types: list({int32, int64}) >= 0 = []",
			"feature_list_dense_shapes: list(shape) >= 0 = []",
		},
		Shape: sequenceShape(2),
	}, newSequence(2))
	kernel.RegisterNew(opdef.Def{
		Name: "ParseSingleSequenceExample", Doc: "Parses features and feature lists from one serialized SequenceExample message.",
		In: []string{
			"serialized: string", "feature_list_dense_missing_assumed_empty: string",
			"context_sparse_keys: Ncontext_sparse * string", "context_dense_keys: Ncontext_dense * string",
			"feature_list_sparse_keys: Nfeature_list_sparse * string", "feature_list_dense_keys: Nfeature_list_dense * string",
			"context_dense_defaults: Tcontext_dense", "debug_name: string",
		},
		Out: []string{
			"context_sparse_indices: Ncontext_sparse * int64", "context_sparse_values: context_sparse_types",
			"context_sparse_shapes: Ncontext_sparse * int64", "context_dense_values: Tcontext_dense",
			"feature_list_sparse_indices: Nfeature_list_sparse * int64", "feature_list_sparse_values: feature_list_sparse_types",
			"feature_list_sparse_shapes: Nfeature_list_sparse * int64", "feature_list_dense_values: feature_list_dense_types",
		},
		Attrs: []string{
			"Ncontext_sparse: int >= 0 = 0", "Ncontext_dense: int >= 0 = 0", "Nfeature_list_sparse: int >= 0 = 0",
			"Nfeature_list_dense: int >= 0 = 0", "context_sparse_types: " + elements + " = []",
			"Tcontext_dense: " + elements + " = []", "feature_list_dense_types: " + elements + " = []",
			"context_dense_shapes: list(shape) >= 0 = []", "feature_list_sparse_types: " + elements + " = []",
			"feature_list_dense_shapes: list(shape) >= 0 = []",
		},
		Shape: sequenceShape(0),
	}, newSequence(0))
}
