// A page that people wrote, with a list of its headings if there are several.
import { type PageDetail, type TextNode, useRead } from '../data'
import { Broken, Loading, Page } from '../frame'
import { Text, slug } from '../text'

const words = (node: TextNode): string => (node.text ?? '') + (node.children?.map(words).join('') ?? '')

export default function TextPage({ name }: { name: string }) {
  const page = useRead<PageDetail>(`/pages/${encodeURIComponent(name)}`)
  if (page.error) return <Broken error={page.error} onRetry={() => void page.refetch()} />
  if (page.data === undefined) return <Loading />
  const { title, body } = page.data
  // Many texts begin with their title, which stands above already.
  const isTwice = body[0]?.kind === 'heading' && words(body[0]).trim() === title.trim()
  const nodes = isTwice ? body.slice(1) : body
  const headings = nodes.filter((it) => it.kind === 'heading' && (it.level ?? 1) <= 2)
  return (
    <Page title={title}>
      <div className="two">
        <Text nodes={nodes} />
        {headings.length > 2 && (
          <aside>
            <nav className="contents" aria-label="On this page">
              {headings.map((it) => (
                <a key={slug(it)} href={`#${slug(it)}`}>
                  {words(it)}
                </a>
              ))}
            </nav>
          </aside>
        )}
      </div>
    </Page>
  )
}
