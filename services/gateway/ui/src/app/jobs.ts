import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { JobList, JobView } from "../contracts";

/** What takes longer than a request. Asked for once; events tell of every step. */
export const jobsQuery = queryOptions({
  queryKey: ["jobs"],
  queryFn: ({ signal }) => api.get<JobList>("/api/jobs", signal),
});

export function isOver(job: JobView): boolean {
  return job.state === "completed" || job.state === "failed";
}

/** Put a job as it was just told into the list; what is known already may be newer. */
export function withJob(list: JobList, job: JobView): JobList {
  const known = list.items.find((each) => each.id === job.id);
  if (known && (known.updatedAt > job.updatedAt || (isOver(known) && !isOver(job)))) return list;
  const items = known ? list.items.map((each) => (each.id === job.id ? job : each)) : [job, ...list.items];
  return { ...list, items };
}

export function noteJob(client: QueryClient, job: JobView): void {
  client.setQueryData(jobsQuery.queryKey, (list) => list && withJob(list, job));
}

/** The jobs of one kind, newest first. */
export function useJobs(kind: string): JobView[] {
  return useQuery(jobsQuery).data?.items.filter((job) => job.kind === kind) ?? [];
}
