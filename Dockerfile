# castpoi as a service:
#   docker build -t castpoi .
#   docker run -p 127.0.0.1:8080:8080 -v "$PWD/RUN:/run-folder:ro" -e CASTPOI_API_KEYS=... castpoi
FROM python:3.11-slim AS build
WORKDIR /castpoi
# The service needs no graphics card: name an index with the CPU build of torch to save gigabytes.
ARG TORCH_INDEX=
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/castpoi \
 && /opt/castpoi/bin/pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
    -c constraints.txt '.[serve]'

FROM python:3.11-slim
RUN useradd --system --uid 10001 castpoi && install -d -o castpoi /data
COPY --from=build /opt/castpoi /opt/castpoi
ENV PATH=/opt/castpoi/bin:$PATH PYTHONUNBUFFERED=1
USER castpoi
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/readyz')"]
# Reachable from outside the container, so an API key is needed: CASTPOI_API_KEYS or --api-key-file.
ENTRYPOINT ["castpoi", "serve"]
CMD ["/run-folder", "--host", "0.0.0.0", "--store", "sqlite:////data/visits.sqlite"]
