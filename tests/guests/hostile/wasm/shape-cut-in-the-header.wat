;; Is five bytes of a plugin.
;; kind: health
;; cut: 5 bytes
;; refused: inspect
;; says: is not WebAssembly
(component
  {{before}}
  (core module $code
    {{core}}
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
