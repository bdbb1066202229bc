"""Where this machine's Debian packages come from, of which the campaigns make the base of their images."""

import subprocess

BASE = 'docker.io/library/debian:bullseye-slim'  # of the Dockerfile; made here, so that no image registry is asked


def host_mirror():
    """The Debian mirror that this machine's apt uses."""
    uris = subprocess.check_output(['apt-get', 'indextargets', '--no-release-info', '--format', '$(REPO_URI)',
                                    'Created-By: Packages'], universal_newlines=True).split()
    return next(uri for uri in uris if uri.rstrip('/').endswith('/debian'))
