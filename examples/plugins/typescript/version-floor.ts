// Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others.

import { abstain, definePlugin, fit, unfit } from '#bulkhead';

type Settings = { minimum?: string } | null;

// Returns a number that orders versions such as v1.30.2 by major and minor number; undefined if there is none.
function version(text: string | undefined): number | undefined {
  const found = /^v?([0-9]{1,4})[.]([0-9]{1,4})/.exec(text ?? '');
  return found === null ? undefined : 10000 * Number(found[1]) + Number(found[2]);
}

export default definePlugin<string>({
  name: 'version-floor',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { minimum: { type: 'string', pattern: '^[0-9]{1,4}[.][0-9]{1,4}$' } },
    additionalProperties: false,
    examples: [null, { minimum: '1.30' }],
  },

  configure: (config) => (config as Settings)?.minimum ?? '1.28',

  filter(binding, candidates, call) {
    const minimum = call.config;
    const least = version(minimum) ?? 0;
    return candidates.text('/status/kubernetesVersion').map((text) => {
      const found = version(text);
      if (found === undefined) return abstain();
      return found >= least ? fit() : unfit('VersionTooOld', `it runs ${text}, and ${minimum} is needed`);
    });
  },
});
