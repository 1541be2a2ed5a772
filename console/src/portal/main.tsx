// Where the developer portal begins. It shares its widgets and tokens with the console and nothing else: it calls
// /portal/v1 only.
import { createRoot } from 'react-dom/client'
import '../ui/tokens.css'
import '../ui/base.css'
import '../ui/widgets.css'
import './portal.css'
import { applyTheme } from '../shell/theme'
import { App } from './app'

// The colours of this portal, above the standard ones.
const theme = document.createElement('link')
theme.rel = 'stylesheet'
theme.href = '/theme.css'
document.head.append(theme)
applyTheme()
const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<App />)
