// Certificates as text: what people paste into one field, as a list.

/** Certificates in PEM, one after the other. What is none is left as it is: the server says what is wrong with it. */
export const certificatesIn = (text: string): string[] => (text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? (text.trim() === '' ? [] : [text])).map((it) => `${it.trim()}\n`)
