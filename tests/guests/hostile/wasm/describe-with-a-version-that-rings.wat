;; Has a control character in its version.
;; kind: health
;; refused: describe
;; says: control characters
(component
  {{before}}
  (core module $code
    {{core}}
    (data (i32.const 133) "\07")
    {{describe}}
    {{configure}}
    {{interpret}})
  {{after}})
