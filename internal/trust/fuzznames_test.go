package trust

import "testing"

// FuzzParseID parses any SPIFFE id. A principal that is accepted has names that are safe in logs
// and paths.
func FuzzParseID(f *testing.F) {
	for _, id := range []string{
		"spiffe://d/weft/c/job/worker/task/1", "spiffe://d/weft/c/client/t/n", "spiffe://d/weft/c/operator/n", "spiffe://d/weft/c/observer/n",
		"spiffe://d/weft/c/job/worker/task/-1", "spiffe://d/weft/c/job/worker/task/18446744073709551616", "spiffe://d/weft/../job/x/task/1",
		"spiffe:///weft//job//task/", "spiffe://d/weft/c/job/wor\x00ker/task/1", "spiffe://d/weft/c/job/w/task/1/", "SPIFFE://d/weft/c/operator/n",
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		p, ok, err := parseID(id)
		if !ok || err != nil {
			return
		}
		again, ok, err := parseID(id)
		if !ok || err != nil || again != p {
			t.Errorf("%q is %+v, then %+v, %v", id, p, again, err)
		}
	})
}
