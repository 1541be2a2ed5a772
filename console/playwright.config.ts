// Browser tests: Debian's Chromium against a real Weir, which each test starts for itself. Nothing is downloaded.
// With ACCEPTANCE=1, as in `make test`, only the acceptance tests run; `make test-console` runs all.
import { defineConfig } from '@playwright/test'
import { browserTests } from './tests/acceptance'

export default defineConfig({
  testDir: 'tests',
  testMatch: '*.spec.ts',
  grep: process.env.ACCEPTANCE === '1' ? browserTests() : undefined,
  outputDir: 'test-results',
  // Each has a Weir and a browser of its own; half of the time they wait.
  workers: 2,
  fullyParallel: true,
  forbidOnly: true,
  timeout: 120_000,
  // A machine that does other work at the same time is slow at times. What fails three times is wrong.
  retries: 2,
  expect: { timeout: 30_000 },
  reporter: [['list']],
  use: {
    viewport: { width: 1440, height: 900 },
    trace: 'retain-on-failure',
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    },
  },
})
