"""Files for UCC, each meant to choose the ring for every allreduce, and whether a build of UCC followed them.

Asked on 4 ranks of one node (1.10-dev of 2026-08-20 with UCX 1.13.1): there the ring sends 36 messages, UCC's own
choice 12 or 16. `tests/mpi/test_ucc_real.py` asks a build again.
"""

RING = "UCC_TL_UCP_TUNE=allreduce:0-inf:@ring\n"
RADIX = "UCC_TL_UCP_ALLREDUCE_KN_RADIX=2\n"
OTHER = "UCC_TL_UCP_ALLREDUCE_SRA_KN_RADIX=2\n"

FOLLOWED = {
    "without a section": RING,
    "for one node": f"[nnodes=1]\n{RING}",
    "for team sizes and ranks per node": f"[team_size=2-8 ppn=4]\n{RING}",
    "for a range of ranks per node": f"[ppn=1-8]\n{RING}",
    "two spaces": f"[ppn=4  nnodes=1]\n{RING}",
    "a section twice": f"[nnodes=1]\n{RING}[nnodes=2]\n{RADIX}[nnodes=1]\n{OTHER}",
    "a colon": RING.replace("=", ": ", 1),
    "spaces around": RING.replace("=", " = ", 1),
    "a comment behind": f"{RING.strip()} ; mine\n",
    "an empty entry": f"{RING.strip()}#\n",
    "capitals": "UCC_TL_UCP_TUNE=ALLREDUCE:0-INF:@RING\n",
    "a team size in the string": "UCC_TL_UCP_TUNE=allreduce:[4]:@ring\n",
    "the number of the algorithm": "UCC_TL_UCP_TUNE=allreduce:@4\n",
    "ranges side by side": "UCC_TL_UCP_TUNE=allreduce:0-2k:@ring#allreduce:2k-inf:@ring\n",
    "line ends of Windows": f"[nnodes=1]\r\n{RING.strip()}\r\n",
    "a score": "UCC_TL_UCP_TUNE=allreduce:0-inf:@ring:inf\n",
}
NOT_FOLLOWED = {
    "an unknown word": f"{RING}[nodes=1]\n{RADIX}",
    "a range that is none": f"{RING}[ppn=many]\n{RADIX}",
    "neither section nor setting": f"{RING}allreduce\n",
    "a name without UCC_": f"{RING}TL_UCP_TUNE=x\n",
    "a setting twice": f"{RING}UCC_TLS=ucp\nUCC_TLS=ucp\n",
    "a setting twice in a section": f"[nnodes=1]\n{RING}UCC_TL_UCP_TUNE=allreduce:@0\n",
    "a setting in both of one section": f"[nnodes=1]\n{RING}[nnodes=2]\n{OTHER}[nnodes=1]\n{RING}",
    "an indented setting": f"UCC_TLS=ucp\n {RING}",
    "a name that is cut": f"[vendor=intel {'team_size=4 ' * 12}nnodes=1]\n{RING}",
    "a comment of the wrong kind": f"{RING.strip()} # mine\n",
    "an unknown algorithm": "[nnodes=1]\nUCC_TL_UCP_TUNE=allreduce:0-inf:@ring#allgather:@9\n",
    "an unknown collective": "UCC_TL_UCP_TUNE=allreduce:@ring#all_reduce:@0\n",
    "sizes the wrong way round": "UCC_TL_UCP_TUNE=allreduce:4k-0:@ring\n",
    "no collective": "UCC_TL_UCP_TUNE=0-4k:@ring\n",
    "ranges that overlap": "UCC_TL_UCP_TUNE=allreduce:0-4k:@ring#allreduce:2k-inf:@ring\n",
}
