// Makes the mistake that the object names, and has no function for scores although its build.yaml has the kind.

import { definePlugin, healthy, unknown } from '#bulkhead';

export default definePlugin({
  name: 'mistakes',
  version: '0.1.0',

  health(observed) {
    switch (observed.text('/spec/mistake')) {
      case 'exception':
        return healthy('Ready', observed.get('/spec/replicas').toString());
      case 'wrong type':
        return true;
      case 'endless loop':
        for (;;);
      case 'memory': {
        const kept = [];
        for (;;) kept.push(new Uint8Array(10_000_000));
      }
      case 'exit':
        return this.health.call(this, observed);
      default:
        return unknown('NoMistake');
    }
  },
});
