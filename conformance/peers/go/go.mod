module conformance/peer

go 1.21

require github.com/gorilla/websocket v1.5.0

replace github.com/gorilla/websocket => ./gorilla
