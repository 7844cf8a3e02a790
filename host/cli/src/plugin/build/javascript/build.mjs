// Builds the component of a plugin: `node build.mjs ENTRY WIT WORLD OUTPUT`. Run by `bulkhead plugin build`.

import { writeFile } from 'node:fs/promises';

import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';

const [entry, wit, world, output] = process.argv.slice(2);
const bundle = entry.replace(/\.js$/, '.bundle.js');

try {
  await build({
    entryPoints: [entry],
    outfile: bundle,
    bundle: true,
    format: 'esm',
    target: 'es2022',
    platform: 'neutral',
    external: ['bulkhead:policy/*'],
    logLevel: 'warning',
  });
} catch {
  // esbuild has printed the errors with their places.
  process.exit(1);
}
const { component } = await componentize({
  sourcePath: bundle,
  witPath: wit,
  worldName: world,
  // The host allows no HTTP.
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile(output, component);
