package table

import "github.com/weft-ml/weft/internal/numeric/murmur"

// hash returns the hash of a key in dense tables. It equals TensorFlow's, because exported buckets
// depend on it.
func hash[K key](key []K) uint64 {
	if len(key) == 1 {
		return hashElem(key[0])
	}
	var h uint64
	for _, k := range key {
		h ^= hashElem(k) + 0x9e3779b97f4a7800 + h<<10 + h>>4
	}
	return h
}

func hashElem[K key](k K) uint64 {
	switch k := any(k).(type) {
	case int32:
		return uint64(k)
	case int64:
		return uint64(k)
	default:
		return murmur.Sum64(k.(string))
	}
}
