// Products: chosen operations of several APIs, offered together under plans of their own.
import { useMemo } from 'react'
import { Link } from 'wouter'
import { type Product, type Subscription, partsOf, productPath, toProduct, useProducts, useSubscriptions } from '../../api/apis'
import { useRight } from '../../api/rights'
import { Empty, Failure, Page } from '../../shell/page'
import { ButtonLink } from '../../ui/button'
import { type Column, Table } from '../../ui/table'
import { State } from '../apis/shared'

interface Row {
  product: Product
  subscriptions: Subscription[]
}

const apisOf = (it: Product): string => [...new Set(Object.keys(it.publications).map((id) => partsOf(id)[0]))].join(', ')
const environmentsOf = (it: Product): string => [...new Set(Object.keys(it.publications).map((id) => partsOf(id)[2]))].join(', ')

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', text: (it) => it.product.name, render: (it) => <Link href={toProduct(it.product.name)}>{it.product.display_name || it.product.name}</Link> },
  { id: 'apis', title: 'APIs', text: (it) => apisOf(it.product) || 'none yet', width: 'minmax(8rem, 1.6fr)' },
  { id: 'environments', title: 'Environments', text: (it) => environmentsOf(it.product), from: 2 },
  { id: 'subscriptions', title: 'Subscriptions', text: (it) => String(it.subscriptions.length), number: (it) => it.subscriptions.length, from: 2, width: '8rem' },
  { id: 'state', title: 'State', text: (it) => it.product.state, render: (it) => <State state={it.product.state} />, width: '7.5rem' },
]

const key = (it: Row) => it.product.name

export default function Products() {
  const [products, subscriptions] = [useProducts(), useSubscriptions()]
  const refused = useRight('apis:write', 'putProduct')
  const rows = useMemo(
    () =>
      (products.data ?? []).map((product) => ({
        product,
        subscriptions: (subscriptions.data ?? []).filter((it) => it.product === product.name && it.state !== 'closed' && it.state !== 'rejected'),
      })),
    [products.data, subscriptions.data],
  )
  const add = (
    <ButtonLink to="/products/@new" look="primary" refused={refused}>
      New product
    </ButtonLink>
  )
  return (
    <Page
      title="Products"
      about="A product offers operations of several APIs together: one key for all of them, and one set of limits."
      calls={[
        { about: 'List products', method: 'GET', path: '/api/v1/products' },
        { about: 'Make one', method: 'PUT', path: productPath('bundle'), body: { publications: { 'pets/1.0.0/test': [] }, state: 'published' } },
      ]}
      actions={add}
    >
      {products.error && products.data === undefined ? (
        <Failure error={products.error} onRetry={() => void products.refetch()} />
      ) : (
        <Table
          label="Products"
          rows={rows}
          columns={columns}
          rowKey={key}
          isLoading={products.isLoading}
          noun={['product', 'products']}
          empty={
            <Empty title="No products yet" example={`curl -X PUT ${location.origin}/api/v1/products/bundle \\\n  -d '{"publications": {"pets/1.0.0/test": ["listPets"], "owners/1/test": []}, "state": "published"}'`}>
              <p>
                Customers often need parts of several APIs. Put those operations into a product, and offer it under plans of its own: who subscribes gets one key
                for all of it. Make one here, or on the command line:
              </p>
            </Empty>
          }
        />
      )}
    </Page>
  )
}
