// Reports by mail: a board or panels, every week or month.
import { useQuery } from '@tanstack/react-query'
import { ApiError, get } from './client'

export interface Report {
  id: string
  title: string
  board?: string | null
  schedule: { every: 'week' | 'month'; day: number; at: string; time_zone: string }
  to: string[]
  csv: boolean
  enabled: boolean
  /** Seconds since 1970; `null`: it is not sent by itself. */
  next: number | null
  /** Its version. */
  etag?: string
}

export const reportPath = (id: string) => `/api/v1/reports/${encodeURIComponent(id)}`
export const toReport = (id: string) => `/reports/${encodeURIComponent(id)}`

/** All reports; `null`: analytics are off. */
export function useReports() {
  return useQuery({
    queryKey: ['reports'],
    queryFn: async ({ signal }): Promise<Report[] | null> => {
      try {
        return (await get<{ items: Report[] }>('/api/v1/reports', {}, signal)).items
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
    staleTime: 0,
  })
}

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']

/** When it is sent, in words. */
export function scheduleText({ every, day, at, time_zone }: Report['schedule']): string {
  return `${every === 'week' ? `every ${DAYS[day - 1] ?? 'week'}` : `on day ${day} of each month`} at ${at} ${time_zone}`
}

export const WEEKDAYS = DAYS
