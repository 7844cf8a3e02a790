// Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any.
package main

import "provider-spread/bulkhead"

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "provider-spread",
		Version:  "0.1.0",
		Reusable: true,
		Score:    score,
	})
}

func main() {}

func score(binding bulkhead.Binding, feasible bulkhead.Clusters) ([]uint32, error) {
	providers, replicas := feasible.Providers(), feasible.Replicas()
	sums, total := make(map[string]uint64), uint64(0)
	for i, provider := range providers {
		sums[provider] += uint64(replicas[i])
		total += uint64(replicas[i])
	}
	scores := make([]uint32, len(providers))
	for i, provider := range providers {
		scores[i] = 100
		if total > 0 {
			scores[i] -= uint32(100 * sums[provider] / total)
		}
	}
	return scores, nil
}
