// Lets workloads run only on clusters with the configured labels.

import { definePlugin, fit, unfit } from '#bulkhead';

/** A label; any value fits if it is absent. */
type Label = { key: string; value?: string };
type Settings = { labels?: Label[] } | null;

export default definePlugin<Label[]>({
  name: 'label-filter',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: {
      labels: {
        type: 'array',
        items: {
          type: 'object',
          properties: { key: { type: 'string', minLength: 1 }, value: { type: 'string' } },
          required: ['key'],
          additionalProperties: false,
        },
      },
    },
    additionalProperties: false,
    examples: [null, { labels: [{ key: 'tier', value: 'gold' }, { key: 'example.io/audited' }] }],
  },

  configure: (config) => (config as Settings)?.labels ?? [],

  filter(binding, candidates, call) {
    const verdicts = Array.from({ length: candidates.length }, fit);
    // The first label that a cluster lacks is the reason.
    for (const { key, value } of call.config) {
      candidates.label(key).forEach((found, i) => {
        if (verdicts[i]?.verdict !== 'fit') return;
        if (found === undefined) verdicts[i] = unfit('LabelMissing', `no label ${key}`);
        else if (value !== undefined && found !== value) {
          verdicts[i] = unfit('LabelDiffers', `label ${key} is ${found}, not ${value}`);
        }
      });
    }
    return verdicts;
  },
});
