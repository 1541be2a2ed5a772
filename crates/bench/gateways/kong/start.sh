#!/bin/sh
# Prepares Kong's directory and becomes its NGINX.
set -eu
"{{program}}" prepare -p "{{dir}}/prefix" -c "{{dir}}/kong.conf"
nginx=$(command -v /usr/local/openresty/nginx/sbin/nginx || command -v openresty)
exec "$nginx" -p "{{dir}}/prefix" -c nginx.conf -g "daemon off;"
