// How the console and the developer portal are built: a page each over the same widgets, below /ui/, file names that change with their content, nothing inside the page.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    cssCodeSplit: true,
    reportCompressedSize: false,
    rolldownOptions: { input: { index: 'index.html', portal: 'portal.html' } },
  },
  server: {
    // `npm run dev` beside a running Weir.
    proxy: {
      '/api': process.env.WEIR_CONSOLE ?? 'http://127.0.0.1:8002',
      '/portal/v1': process.env.WEIR_PORTAL ?? 'http://127.0.0.1:8003',
    },
  },
})
