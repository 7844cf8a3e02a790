// Holds evictions in business hours, Monday to Friday in UTC.

import { definePlugin, hold, release } from '#bulkhead';

type Settings = { open?: number; close?: number } | null;

const HOUR = { type: 'integer', minimum: 0, maximum: 24 };

export default definePlugin<{ open: number; close: number }>({
  name: 'business-hours',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { open: HOUR, close: HOUR },
    additionalProperties: false,
    examples: [null, { open: 7, close: 20 }],
  },

  configure(config) {
    const settings = config as Settings;
    return { open: settings?.open ?? 8, close: settings?.close ?? 18 };
  },

  evictionCheck(binding, task, call) {
    const { open, close } = call.config;
    const now = call.now;
    const second = now.getUTCHours() * 3600 + now.getUTCMinutes() * 60 + now.getUTCSeconds();
    const isWorkday = now.getUTCDay() >= 1 && now.getUTCDay() <= 5;
    if (!isWorkday || second < open * 3600 || second >= close * 3600) return release('OutOfHours');
    const message = `evictions wait until ${String(close).padStart(2, '0')}:00 UTC`;
    return hold('BusinessHours', message, close * 3600 - second);
  },
});
