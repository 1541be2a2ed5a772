// How the console is built: one page below /ui/, file names that change with their content, nothing inside the page.
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
  },
  server: {
    // `npm run dev` beside a running Weir.
    proxy: { '/api': process.env.WEIR_CONSOLE ?? 'http://127.0.0.1:8002' },
  },
})
