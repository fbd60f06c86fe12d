// Ours; the other files are those of the npm package swagger-ui-dist (see README.md).
const place = document.getElementById("swagger-ui");
SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // an image from another server
});
