// What dialects are called.
export const DIALECTS: Record<string, string> = { native: 'Weir', kong: 'Kong', apisix: 'APISIX' }
