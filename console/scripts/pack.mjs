// Packs what Vite built into crates/console/assets/console.archive, which is embedded into the program.
// The format is described in crates/console/src/archive.rs. The same sources give the same bytes.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const archive = join(root, '../crates/console/assets/console.archive')
const mediaTypes = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
}

const sha256 = (content) => createHash('sha256').update(content).digest('hex')

function filesBelow(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? filesBelow(path) : [path]
  })
}

// What the build reads: a test of the crate computes the same.
function hashOfSources() {
  const named = ['index.html', 'portal.html', 'package-lock.json', 'tsconfig.json', 'vite.config.ts'].map((name) => join(root, name))
  const lines = [...named, ...filesBelow(join(root, 'src'))].map(
    (path) => `${relative(root, path)} ${sha256(readFileSync(path))}\n`,
  )
  lines.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return sha256(lines.join(''))
}

const dist = join(root, 'dist')
const contents = []
const files = filesBelow(dist)
  .map((path) => relative(dist, path))
  .sort()
  .map((path) => {
    const content = readFileSync(join(dist, path))
    const compressed = gzipSync(content, { level: 9 })
    contents.push(compressed)
    return {
      path,
      media_type: mediaTypes[extname(path)] ?? 'application/octet-stream',
      hash: sha256(content).slice(0, 32),
      is_hashed: path.startsWith('assets/'),
      size: content.length,
      compressed: compressed.length,
    }
  })
const list = JSON.stringify({ sources: hashOfSources(), files })
mkdirSync(dirname(archive), { recursive: true })
writeFileSync(archive, Buffer.concat([Buffer.from(`weir-console-assets 1\n${list}\n`), ...contents]))
const total = contents.reduce((sum, it) => sum + it.length, 0)
for (const file of files) console.log(`${String(file.compressed).padStart(8)} ${file.path}`)
console.log(`${String(total).padStart(8)} in all`)
