import type { JobView } from "../contracts";

/** How far a job is, and what it is doing. */
export function JobProgress({ job }: { job: JobView }) {
  return (
    <div className="job">
      <div className="line small">
        <span className="grow cut dim">{job.note || (job.state === "queued" ? "Waiting" : "Begins")}</span>
        <span className="dim">{Math.floor(job.progress * 100)} %</span>
      </div>
      <progress className="meter" aria-label={job.title} max={1} value={job.progress} />
    </div>
  );
}
