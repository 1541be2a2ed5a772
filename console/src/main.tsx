// Where the console begins.
import { createRoot } from 'react-dom/client'
import './ui/tokens.css'
import './ui/base.css'
import './ui/widgets.css'
import { App } from './shell/app'
import { followPlaces } from './shell/place'
import { applyTheme } from './shell/theme'

applyTheme()
followPlaces()
const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<App />)
